/** Runs the thread that writes one index file while the main thread continues to serve connections. */

import { parentPort } from 'node:worker_threads'

import { writeIndexFile } from './format.ts'
import type { WriteRequest, WriterMessage } from './messages.ts'

/** The position of the engine's count of write sections in the first part, in words. The count is odd during a section. */
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
