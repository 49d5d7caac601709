/** What the library offers for dealing out connections to other threads, and leaves out of its own types. */

declare module 'uWebSockets.js' {
  /** Names an app in any thread of the process, until it is closed. */
  export type AppDescriptor = number | bigint

  interface TemplatedApp {
    getDescriptor(): AppDescriptor
    /** From now on every new connection goes to one of the children, in turn. */
    addChildAppDescriptor(child: AppDescriptor): TemplatedApp
    removeChildAppDescriptor(child: AppDescriptor): TemplatedApp
  }
}

export type { AppDescriptor } from 'uWebSockets.js'
