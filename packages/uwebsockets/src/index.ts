/**
 * Loads uWebSockets.js. The current release needs glibc 2.38 and Node 22, 24 or 26. The previous release runs on older systems,
 * but only on Node up to 22 (docs/decisions/0040-two-releases-of-uwebsockets.md). Every thread of a process loads the same release.
 */

import type { HttpRequest, HttpResponse, TemplatedApp, us_listen_socket } from '@uwsjs/core'

import { isLibrary, loadNewest } from './load.ts'

export type { HttpRequest, HttpResponse, TemplatedApp }

export type Listener = us_listen_socket

/** Identifies an app in every thread of the process, until the app is closed. */
export type AppDescriptor = ReturnType<TemplatedApp['getDescriptor']>

const { library, release, notLoaded, closesAfterHead } = await loadNewest(process.env['UWEBSOCKETS_RELEASE'], isLibrary)

/** The loaded release, and the reasons for which newer ones were not loaded. */
export const HTTP_LIBRARY: Readonly<{ release: string; notLoaded: readonly string[] }> = { release, notLoaded }

/** Creates a server, which belongs to the calling thread. */
export const { App } = library

// Removes the header that names the library from every response of the process.
// oxlint-disable-next-line no-underscore-dangle -- the name is part of the library
library._cfg('silent')

/**
 * Ends a response to HEAD with the content length `bodyBytes`, and closes the connection. Call it inside `cork`. `isClosed` returns whether
 * the client has closed the connection, after which the response must not be used.
 */
export function endHeadAndClose(response: HttpResponse, bodyBytes: number, isClosed: () => boolean): void {
  if (closesAfterHead) {
    response.endWithoutBody(bodyBytes, true)
    return
  }
  response.writeHeader('connection', 'close').tryEnd('', bodyBytes)
  setImmediate(() => {
    if (!isClosed()) response.close()
  })
}

/** Stops accepting connections. Open connections stay open. */
export function closeListener(listener: us_listen_socket): void {
  library.us_listen_socket_close(listener)
}

/** Returns the TCP port of a listener. */
export function portOf(listener: us_listen_socket): number {
  return library.us_socket_local_port(listener)
}
