/*
 * Keeps librdkafka's broker threads from spinning. The archive's poll is linked to this one.
 *
 * With idempotence, librdkafka sends no further request to a partition that has five messages or more on their way (it
 * compares their number with the limit that is meant for requests). What waits behind them makes the thread poll with a
 * timeout of 0 again and again: for the time of a round trip under load, and as long as a broker is frozen. Only an answer,
 * or the wake-up descriptor, can end that wait, and both end a poll that waits. So when a thread has polled a few times in a
 * row without waiting and found nothing, it waits for a millisecond, and later for ten.
 */
#include <poll.h>

/* The descriptors of a connection: its socket and the one that wakes the thread. */
enum { CONNECTION = 2 };
/* So many polls in a row may find nothing before they wait, and before they wait for longer. */
enum { PATIENCE = 3, LONG_PATIENCE = 100 };

int __real_poll(struct pollfd *fds, nfds_t n, int timeout);

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	static __thread unsigned in_vain;
	int found;

	if (timeout != 0 || n != CONNECTION)
		return __real_poll(fds, n, timeout);
	found = __real_poll(fds, n, in_vain < PATIENCE ? 0 : in_vain < LONG_PATIENCE ? 1 : 10);
	in_vain = found == 0 ? in_vain + 1 : 0;
	return found;
}
