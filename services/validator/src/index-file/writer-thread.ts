/** A thread that writes one index file, while the main thread goes on serving connections. */

import { parentPort } from 'node:worker_threads'

import { writeIndexFile } from './format.ts'
import type { WriteRequest, WriterMessage } from './messages.ts'

/** Where the engine counts its write sections: the first word of the first part. */
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
