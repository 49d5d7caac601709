/**
 * The arguments and environment with which a service's process starts. A running process cannot change them. They are the same as in the
 * Dockerfiles of infra/docker and in docs/operations/install.md. Without the options for garbage collection and memory, a check takes a few
 * percent more time. Without `--disable-sigusr1`, the signal SIGUSR1 opens a debugger on the loopback address, through which every user of
 * the machine could run code in the service.
 */
export const LAUNCH = {
  validator: {
    /**
     * Each thread collects its own garbage, because helper threads of V8 would take cores from the workers. A semi-space for young objects
     * has 4 MiB. With V8's initial 1 MiB, more objects would survive into the old space. With V8's maximum of 16 MiB, one collection would
     * copy more objects. The memory reducer is off, because it runs full collections while the process is idle. Pretenuring is off, because
     * with it most rows of a load sometimes reach the old space, where they stay as garbage until a full collection.
     */
    nodeArguments: [
      '--single-threaded-gc',
      '--min-semi-space-size=4',
      '--max-semi-space-size=4',
      '--no-memory-reducer',
      '--no-allocation-site-pretenuring',
      '--disable-sigusr1',
    ],
    /**
     * glibc requests huge pages for large blocks such as the index, which makes memory reads faster (docs/performance.md). It
     * returns freed blocks of at least 1 MiB to the system. By default, glibc would raise this threshold at run time. Other
     * C libraries and versions of glibc before 2.35 ignore the variable.
     */
    env: { GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=1048576' },
  },
  management: { nodeArguments: ['--disable-sigusr1'], env: {} },
}
