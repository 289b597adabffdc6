import java.util.ArrayList;
import java.util.HexFormat;
import java.util.Map;
import java.util.Scanner;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Produces a record for each key on standard input, in hex, and prints the partition of each. */
public class Partitions {
    public static void main(String[] args) throws Exception {
        var bytes = new ByteArraySerializer();
        try (var producer = new KafkaProducer<>(Map.<String, Object>of("bootstrap.servers", args[0]), bytes, bytes);
             var keys = new Scanner(System.in)) {
            var sent = new ArrayList<Future<RecordMetadata>>();
            while (keys.hasNextLine()) {
                byte[] key = HexFormat.of().parseHex(keys.nextLine());
                sent.add(producer.send(new ProducerRecord<>(args[1], key, key)));
            }
            for (var s : sent) {
                System.out.println(s.get().partition());
            }
        }
    }
}
