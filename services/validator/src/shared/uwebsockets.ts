/** Types for functions of uWebSockets.js that its own declarations lack. */

declare module 'uWebSockets.js' {
  /** Identifies an app to every thread of the process, until the app is closed. */
  export type AppDescriptor = number | bigint

  /** `silent` removes the header that names the library from every response of the process. */
  // oxlint-disable-next-line no-underscore-dangle -- the library's own name
  export function _cfg(key: 'silent'): void

  interface TemplatedApp {
    getDescriptor(): AppDescriptor
    /** Passes every later connection to the children in turn. */
    addChildAppDescriptor(child: AppDescriptor): TemplatedApp
    removeChildAppDescriptor(child: AppDescriptor): TemplatedApp
  }
}

export type { AppDescriptor } from 'uWebSockets.js'
