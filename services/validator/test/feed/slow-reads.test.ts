/** Tests how the follower reads the change log of a server that is too slow to return many changes in time. */

import { type FeedReading, MAX_CHANGES } from '@keyward/database'
import { expect, test } from 'vitest'

import {
  Follower,
  type FeedConnection,
  type FeedSource,
  type FeedTarget,
  type FollowerEvents,
} from '../../src/feed/follower.ts'

const ORGANIZATION = Buffer.alloc(16, 1)
const READING: FeedReading = { snapshot: '10:10:', behind: false, large: [], changes: [], reloads: 0 }
const nothing = (): void => undefined

const target: FeedTarget = {
  apply: () => [],
  applyPage: () => [],
  beginPages: nothing,
  endPages: nothing,
  abandonPages: nothing,
  changeHistory: nothing,
  changedSince: () => null,
  beginReload: nothing,
  receive: () => [],
  unsettled: [],
  isInPlace: false,
  isTooLong: false,
  search: () => true,
  endReload: () => [],
  abandonReload: nothing,
}

const events: FollowerEvents = {
  onSkipped: nothing,
  onError: nothing,
  onLoadProgress: nothing,
  onLoaded: nothing,
  onRead: nothing,
  onGap: nothing,
  onCaughtUp: nothing,
  onCaughtUpButLarge: nothing,
}

function canceled(): Error {
  return Object.assign(new Error('canceled'), { code: '57014' })
}

test('reads fewer changes, with a longer timeout, after a timeout, and reads organizations with many changes separately', async () => {
  const limits: number[] = []
  const timeouts: number[] = []
  const large: (readonly Uint8Array[])[] = []
  const { promise: isCaughtUp, resolve } = Promise.withResolvers<void>()
  const connection: FeedConnection = {
    identify: () => Promise.resolve({ identity: 'server', published: null }),
    read: (snapshot, { maxChanges = 0, except = [] } = {}) => {
      limits.push(maxChanges)
      if (except.length > 0 || snapshot === READING.snapshot) return Promise.resolve(READING)
      if (maxChanges > 3_000) return Promise.reject(canceled())
      return Promise.resolve({ ...READING, large: [ORGANIZATION] })
    },
    readLarge: (_since, organizations) => {
      large.push(organizations)
      return { done: Promise.resolve('10:10:'), close: nothing }
    },
    load: () => ({ done: Promise.resolve({ snapshot: '9:9:', reloads: 0 }), close: nothing }),
    close: nothing,
  }
  const connect: FeedSource['connect'] = (_onWake, _onLost, timeoutMs) => {
    timeouts.push(timeoutMs)
    return Promise.resolve(connection)
  }
  const follower = new Follower({ connect }, target, {
    ...events,
    onCaughtUp: ({ snapshot }) => snapshot === READING.snapshot && resolve(),
  })
  follower.start({ identity: 'server', snapshot: '9:9:' })
  await isCaughtUp
  await follower.stop()
  expect(limits.slice(0, 4)).toEqual([MAX_CHANGES, MAX_CHANGES / 2, MAX_CHANGES / 4, MAX_CHANGES / 8])
  expect(large).toEqual([[ORGANIZATION]])
  expect(timeouts).toEqual([1_500, 3_000, 6_000, 12_000])
  // The first complete read restores the limit for the reads that follow.
  expect(limits.slice(4, 6)).toEqual([MAX_CHANGES / 8, MAX_CHANGES])
})

test('completes a load although the changes after it cannot be read in time, and reads these changes with a lower limit', async () => {
  const limits: number[] = []
  const positions: string[] = []
  const { promise: isCaughtUp, resolve } = Promise.withResolvers<void>()
  const connection: FeedConnection = {
    identify: () => Promise.resolve({ identity: 'server', published: null }),
    read: (snapshot, { maxChanges = 0 } = {}) => {
      limits.push(maxChanges)
      if (snapshot === READING.snapshot || maxChanges <= MAX_CHANGES / 2) return Promise.resolve(READING)
      return Promise.reject(canceled())
    },
    readLarge: () => ({ done: Promise.resolve('10:10:'), close: nothing }),
    load: () => ({ done: Promise.resolve({ snapshot: '9:9:', reloads: 0 }), close: nothing }),
    close: nothing,
  }
  const follower = new Follower({ connect: () => Promise.resolve(connection) }, target, {
    ...events,
    onCaughtUp: ({ snapshot }) => {
      positions.push(snapshot)
      if (snapshot === READING.snapshot) resolve()
    },
  })
  follower.start(null)
  await isCaughtUp
  await follower.stop()
  expect(positions.slice(0, 2)).toEqual(['9:9:', '10:10:'])
  expect(limits.slice(1, 3)).toEqual([MAX_CHANGES, MAX_CHANGES / 2])
  expect(limits[0]).toBeGreaterThan(MAX_CHANGES)
})
