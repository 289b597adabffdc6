package rdkafka

import (
	"bytes"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
)

// fileForm is what a file must be for librdkafka to take it.
type fileForm struct {
	folder bool // may be a folder of such files
	// block begins or ends the type of a PEM block of which there must be one; without it the
	// file must have something in it, and no more is known.
	block string
	what  string // names the block
	// binary tells that the file is not in PEM.
	binary bool
}

// fileForms are the forms of fileProperties.
var fileForms = map[string]fileForm{
	"https.ca.location":        {folder: true, block: "CERTIFICATE", what: "certificate"},
	"ssl.ca.location":          {folder: true, block: "CERTIFICATE", what: "certificate"},
	"ssl.certificate.location": {block: "CERTIFICATE", what: "certificate"},
	"ssl.crl.location":         {block: "CRL", what: "list of revoked certificates"},
	"ssl.key.location":         {block: "PRIVATE KEY", what: "private key"},
	"ssl.keystore.location":    {binary: true},
}

// CheckFile tells whether librdkafka can use the file that the value of a property names: nil,
// or an error that continues the sentence that begins with the path and that holds nothing of
// the file. For any other property the file must have something in it. librdkafka's own errors
// name neither the path nor, for most faults, what is wrong.
func CheckFile(name, path string) error {
	form := fileForms[name]
	if form.folder && path == "probe" { // librdkafka's word for: look for it
		return nil
	}
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return unreadable(err)
	case st.IsDir() && form.folder:
		_, err := os.ReadDir(path)
		return unreadable(err)
	case st.IsDir():
		return errors.New("is a folder, and a file is needed")
	case !st.Mode().IsRegular():
		return nil // what is read of a pipe is gone
	}
	content, err := readSome(path)
	if err != nil {
		return unreadable(err)
	}
	return form.check(content)
}

// unreadable says why a file can't be read, without its path.
func unreadable(err error) error {
	if err == nil {
		return nil
	}
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	return errors.New("can't be read: " + err.Error())
}

// readSome reads as much of a file as is looked at.
func readSome(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// check looks at the content of a file.
func (form fileForm) check(content []byte) error {
	content = bytes.TrimSpace(content)
	inPEM := bytes.Contains(content, []byte("-----BEGIN "))
	switch {
	case len(content) == 0:
		return errors.New("is empty")
	case form.binary && inPEM:
		return errors.New("is in PEM, and a key store of PKCS#12 is needed")
	case form.block == "":
		return nil
	}
	for rest := content; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if strings.Contains(block.Type, form.block) {
			return nil
		}
	}
	text := "holds no " + form.what + " in PEM"
	switch {
	case bytes.HasPrefix(content, []byte{0xfe, 0xed, 0xfe, 0xed}):
		text += ": it is a key store of Java"
	case !inPEM && content[0] == 0x30: // the sequence that all these are in DER
		text += ": it is in DER"
	}
	return errors.New(text)
}
