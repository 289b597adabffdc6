/* What the executable exports in some versions only. A program can't hide its functions at run
 * time, so these are in libraries, one for each name in the list, that are loaded before the
 * plugin and made visible to it as those of the executable are. */

#include "host.h"

#include <dlfcn.h>
#include <unistd.h>

/* 5.0.0 brought all of them but the readers of metrics and traces, which are older. */
const char *compat_exports(enum compat c)
{
	return c == COMPAT_2_2 ? "telemetry" : "telemetry,pipeline,ingress";
}

/* The libraries are in a folder beside the executable. */
static void folder(char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - 1);

	path[n > 0 ? n : 0] = '\0';
	char *slash = strrchr(path, '/');
	if (slash != NULL)
		*slash = '\0';
}

bool exports_load(const char *list)
{
	char dir[4096], path[8192];

	folder(dir, sizeof dir);
	while (*list != '\0') {
		size_t n = strcspn(list, ",");
		snprintf(path, sizeof path, "%s/chost-exports/%.*s.so", dir, (int)n, list);
		if (dlopen(path, RTLD_NOW | RTLD_GLOBAL) == NULL) {
			fprintf(stderr, "chost: %s\n", dlerror());
			return false;
		}
		list += n + (list[n] == ',');
	}
	return true;
}
