/** Starts the servers of tests on the loopback address, and closes them with their connections. The default port is a free one. */

import { once } from 'node:events'
import type { Server } from 'node:http'

export interface Listening {
  url: string
  close: () => Promise<void>
}

export async function listen(server: Server, port = 0): Promise<Listening> {
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The server has no TCP port.')
  return {
    url: `http://127.0.0.1:${address.port}`,
    async close() {
      if (!server.listening) return
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
