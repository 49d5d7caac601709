/** Writes one index file in a separate thread, while the main thread continues to accept connections. */

import { parentPort } from 'node:worker_threads'

import { IMAGE_VERSION } from '@keyward/engine'

import { writeIndexFile } from './format.ts'
import type { WriteRequest, WriterMessage } from './messages.ts'

function write({ path, key, content }: WriteRequest, send: (message: WriterMessage) => void): void {
  const [control] = content.parts
  const version = (): number =>
    control === undefined ? 0 : Atomics.load(new Int32Array(control.buffer), IMAGE_VERSION)
  try {
    const before = version()
    const bytes = writeIndexFile(path, key, content, () => {
      const isUnchanged = version() === before && before % 2 === 0
      send({ type: 'copied' })
      return isUnchanged
    })
    send({ type: 'written', bytes })
  } catch (error) {
    send({ type: 'failed', message: error instanceof Error ? error.message : String(error) })
  }
}

const port = parentPort
port?.once('message', (request: WriteRequest) => write(request, (message) => port.postMessage(message)))
port?.postMessage({ type: 'ready' } satisfies WriterMessage)
