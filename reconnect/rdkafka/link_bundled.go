//go:build !rdkafka_private

package rdkafka

// Plain Go commands link the static archive of the module: importing the package puts
// it on the linker's command line. The plugin is built with the tag rdkafka_private and
// links the private shared library instead, see the Makefile.
import _ "github.com/confluentinc/confluent-kafka-go/v2/kafka"
