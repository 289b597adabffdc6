import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.UnsupportedCallbackException;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallback;

/**
 * Takes what brokers of Amazon MSK take, as far as that can be told without AWS: a presigned URL of kafka-cluster:Connect by
 * the one access key that it knows. Whom it lets in must log in again after a few seconds.
 */
public class IamValidator implements AuthenticateCallbackHandler {
    private static final long SESSION_MS = 8000;

    @Override
    public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> jaas) {
    }

    @Override
    public void handle(Callback[] callbacks) throws UnsupportedCallbackException {
        for (Callback callback : callbacks) {
            if (!(callback instanceof OAuthBearerValidatorCallback)) {
                throw new UnsupportedCallbackException(callback);
            }
            OAuthBearerValidatorCallback asked = (OAuthBearerValidatorCallback) callback;
            String value = asked.tokenValue();
            if (isPresigned(value)) {
                asked.token(new Accepted(value, System.currentTimeMillis()));
            } else {
                asked.error("invalid_token", null, null);
            }
        }
    }

    private static boolean isPresigned(String token) {
        try {
            URI url = URI.create(new String(Base64.getUrlDecoder().decode(token), StandardCharsets.UTF_8));
            List<String> query = List.of(url.getRawQuery().split("&"));
            return url.getScheme().equals("https") && url.getHost().equals("kafka.eu-west-1.amazonaws.com")
                && query.contains("Action=kafka-cluster%3AConnect") && query.contains("X-Amz-Expires=900")
                && query.stream().anyMatch(p -> p.startsWith("X-Amz-Credential=" + System.getProperty("iam.key") + "%2F"));
        } catch (RuntimeException e) {
            return false;
        }
    }

    @Override
    public void close() {
    }

    private record Accepted(String value, long now) implements OAuthBearerToken {
        @Override
        public Set<String> scope() {
            return Set.of();
        }

        @Override
        public long lifetimeMs() {
            return now + SESSION_MS;
        }

        @Override
        public String principalName() {
            return System.getProperty("iam.key");
        }

        @Override
        public Long startTimeMs() {
            return now;
        }
    }
}
