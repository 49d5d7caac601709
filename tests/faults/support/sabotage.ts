/**
 * Injects faults into a service. The main thread and the workers import this module first. The module runs the command in the
 * file that KEYWARD_SABOTAGE names, once per change of the file. The first word is the command, the second its argument:
 *
 *   throw       an uncaught error in each worker
 *   exit        each worker ends without closing its server, like a terminated worker
 *   fill        a worker allocates until no memory is left
 *   abort       the process aborts
 *   clock <ms>  the clock of every thread gets an offset
 */

import { readFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

const file = process.env['KEYWARD_SABOTAGE'] ?? ''
const trueNow = Date.now.bind(Date)
let offsetMs = 0
let done = ''

/** A Date class whose current time has an offset. Times that are given to the constructor are unchanged. */
class ShiftedDate extends Date {
  constructor(...given: [] | [number | string | Date]) {
    if (given.length === 0) super(ShiftedDate.now())
    else super(...given)
  }

  static override now(): number {
    return trueNow() + offsetMs
  }
}

function fill(): never {
  for (const hoard: string[] = []; ;) hoard.push(String(hoard.length).repeat(10_000).split('').join(' '))
}

function act(name: string, detail: string | undefined): void {
  switch (name) {
    case 'throw':
      if (!isMainThread) throw new Error('Sabotaged')
      return
    case 'exit':
      if (!isMainThread) process.exit()
      return
    case 'fill':
      if (!isMainThread) fill()
      return
    case 'abort':
      if (isMainThread) process.abort()
      return
    case 'clock':
      offsetMs = Number(detail)
      Object.assign(globalThis, { Date: ShiftedDate })
      return
    default:
  }
}

function look(): void {
  let content = ''
  try {
    content = readFileSync(file, 'utf8')
  } catch {
    return
  }
  if (content === '' || content === done) return
  done = content
  const [name = '', detail] = content.split(' ')
  act(name, detail)
}

done = ((): string => {
  try {
    const content = readFileSync(file, 'utf8')
    // A new thread ignores the current command, except for the offset of the clock.
    return content.startsWith('clock') ? '' : content
  } catch {
    return ''
  }
})()
look()
setInterval(look, 20).unref()
