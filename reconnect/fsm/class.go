package fsm

import "strconv"

// Class is the kind of an error, as far as the machine and the receipts care. The
// table from librdkafka's codes is in reconnect/rdkafka.
type Class uint8

// The classes.
const (
	// ClassNone: no error.
	ClassNone Class = iota
	// ClassNetwork: refused, reset, unreachable, closed by the peer.
	ClassNetwork
	// ClassResolve: the name of a broker could not be looked up.
	ClassResolve
	// ClassTimeout: an attempt or a request had no answer in time.
	ClassTimeout
	// ClassStalled: connected, yet nothing was acknowledged for too long.
	ClassStalled
	// ClassTLS: the handshake or the verification of a certificate failed.
	ClassTLS
	// ClassAuthentication: the broker does not accept our credentials.
	ClassAuthentication
	// ClassAuthorization: the credentials are good and the right is missing.
	ClassAuthorization
	// ClassTopic: an operator can mend it, such as an unknown topic; the record is fine.
	ClassTopic
	// ClassRecord: this record can never be written.
	ClassRecord
	// ClassTransient: worth another try, nothing is known to be wrong.
	ClassTransient
	// ClassFatal: the client can't go on.
	ClassFatal

	numClasses = iota
)

var classNames = [numClasses]string{
	"none", "network", "resolve", "timeout", "stalled", "tls", "authentication",
	"authorization", "topic", "record", "transient", "fatal",
}

// String returns the name used in logs and metrics.
func (c Class) String() string { return name(classNames[:], uint8(c)) }

// Classes returns every class of an error.
func Classes() []Class {
	all := make([]Class, 0, numClasses-1)
	for c := ClassNone + 1; c < numClasses; c++ {
		all = append(all, c)
	}
	return all
}

// ranks orders the classes by how much they tell an operator about an outage. Classes
// that are about records and not about connections have rank 0 and never become the
// reason of one.
var ranks = [numClasses]uint8{
	ClassNetwork:        1,
	ClassTimeout:        2,
	ClassStalled:        3,
	ClassResolve:        4,
	ClassAuthorization:  5,
	ClassTLS:            6,
	ClassAuthentication: 7,
	ClassFatal:          8,
}

// Rank tells how telling the class is as the reason of an outage; 0 means not at all.
func (c Class) Rank() int {
	if int(c) < len(ranks) {
		return int(ranks[c])
	}
	return 0
}

// Worse returns the more telling of two classes, and the first when they are equal.
func Worse(a, b Class) Class {
	if b.Rank() > a.Rank() {
		return b
	}
	return a
}

// name looks a value up in its list of names and survives values that are not in it.
func name(names []string, v uint8) string {
	if int(v) < len(names) {
		return names[v]
	}
	return "unknown(" + strconv.Itoa(int(v)) + ")"
}
