/** Declares the types of functions that the declarations of uWebSockets.js lack. */

declare module 'uWebSockets.js' {
  /** Identifies an app in every thread of the process, until the app is closed. */
  export type AppDescriptor = number | bigint

  /** `silent` removes the header that names the library from every response of the process. */
  // oxlint-disable-next-line no-underscore-dangle -- the name is part of the library
  export function _cfg(key: 'silent'): void

  interface TemplatedApp {
    getDescriptor(): AppDescriptor
    /** Adds a child. The app passes every later connection to its children in turn. */
    addChildAppDescriptor(child: AppDescriptor): TemplatedApp
    removeChildAppDescriptor(child: AppDescriptor): TemplatedApp
  }
}

export type { AppDescriptor } from 'uWebSockets.js'
