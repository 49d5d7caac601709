import { propagation } from '@keyward/contract/management/propagation'

import { showDone } from '../notices.tsx'
import { text } from '../text.ts'
import { type Applied, call } from './client.ts'

const POLL_MS = 1_000
const MAX_POLLS = 30

/** Shows a message as soon as the late validators have applied the change too. Gives up silently after half a minute. */
async function follow(): Promise<void> {
  for (let i = 0; i < MAX_POLLS; i++) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    const { validators, current } = await call(propagation.readPropagation, {})
    if (current < validators) continue
    showDone(text.liveOn(current, validators))
    return
  }
}

/** Returns the message about a saved change. If validators are late, another message follows as soon as they have applied the change. */
export function liveMessage(saved: string, applied: Applied | null): string {
  if (applied === null) return saved
  if (applied.live === 0) return `${saved} No validator is running.`
  if (applied.applied === applied.live) return `${saved} ${text.liveOn(applied.applied, applied.live)}`
  void follow().catch(() => undefined)
  return `${saved} ${text.liveOn(applied.applied, applied.live)}`
}
