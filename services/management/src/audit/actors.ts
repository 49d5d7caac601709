import { type Actor, actor } from '@keyward/contract'

/** The actor that a list shows instead of one of a type that this version does not know. */
const UNKNOWN: Actor = { type: 'SYSTEM', name: 'an actor of a later version' }

/**
 * Returns a stored actor for a list. During an upgrade, a process of the next version may store actors of new types, and the lists of this
 * version must not fail.
 */
export function listedActor(stored: unknown): Actor {
  return actor.safeParse(stored).data ?? UNKNOWN
}
