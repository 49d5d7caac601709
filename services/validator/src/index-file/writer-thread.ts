/** Writes one index file in a separate thread, while the main thread continues to accept connections. */

import { parentPort } from 'node:worker_threads'

import { writeIndexFile } from './format.ts'
import type { WriteRequest, WriterMessage } from './messages.ts'

/** The index of the seqlock's version in the first part, in 32-bit words. The version is odd during a write section. */
const SECTIONS = 0

function write({ path, key, content }: WriteRequest, send: (message: WriterMessage) => void): void {
  const [control] = content.parts
  const sections = (): number => (control === undefined ? 0 : Atomics.load(new Int32Array(control.buffer), SECTIONS))
  try {
    const before = sections()
    const bytes = writeIndexFile(path, key, content, () => {
      const isUnchanged = sections() === before && before % 2 === 0
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
