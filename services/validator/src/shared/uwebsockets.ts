/** What the library offers and leaves out of its own types. */

declare module 'uWebSockets.js' {
  /** Names an app in any thread of the process, until it is closed. */
  export type AppDescriptor = number | bigint

  /** `silent`: answers do without the header that names the library. For the whole process. */
  // oxlint-disable-next-line no-underscore-dangle -- the library's own name
  export function _cfg(key: 'silent'): void

  interface TemplatedApp {
    getDescriptor(): AppDescriptor
    /** From now on every new connection goes to one of the children, in turn. */
    addChildAppDescriptor(child: AppDescriptor): TemplatedApp
    removeChildAppDescriptor(child: AppDescriptor): TemplatedApp
  }
}

export type { AppDescriptor } from 'uWebSockets.js'
