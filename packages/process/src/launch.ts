/**
 * The arguments and environment with which a service's process starts, because it cannot set them itself any more. They equal
 * those in infra/docker/validator.Dockerfile and docs/operations/install.md. A validator also works without them, and then
 * takes a few percent more time for a check. `--disable-sigusr1` is not about time: without it, that signal opens a debugger on
 * the loopback address, through which every user of the machine could run code in the service.
 */
export const LAUNCH = {
  validator: {
    /**
     * V8 collects garbage on the thread that made it; its helper threads would take cores from the workers. The space of young
     * objects is 4 MiB: with V8's initial 1 MiB more objects survive into the old space, and with its maximum of 16 MiB one
     * collection copies more at once. V8 also does not run full collections to save memory when little happens.
     */
    nodeArguments: [
      '--single-threaded-gc',
      '--min-semi-space-size=4',
      '--max-semi-space-size=4',
      '--no-memory-reducer',
      '--disable-sigusr1',
    ],
    /**
     * glibc requests huge pages for large blocks such as the index, so that reads of memory take less time
     * (docs/performance.md). It returns freed blocks of 1 MiB and more to the system; by default it would raise that bound.
     * Versions before 2.35 and other libraries ignore the variable.
     */
    env: { GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=1048576' },
  },
  management: { nodeArguments: ['--disable-sigusr1'], env: {} },
}
