/**
 * Work of many requests, such as an import. It continues while the person uses other screens, and its screen shows it again. Closing the
 * page ends it, so the browser asks first.
 */

import { useSyncExternalStore } from 'react'

export interface BadRow {
  /** The place of the row, such as "Line 4". */
  where: string
  detail: string
}

export interface Work {
  title: string
  /** The screen that shows the work. */
  path: string
  done: number
  all: number
  /** The result so far, as sentences. */
  summary: string
  bad: readonly BadRow[]
  error: Error | null
  isRunning: boolean
}

export type Report = (progress: Partial<Pick<Work, 'done' | 'summary' | 'bad'>>) => void

const works = new Map<string, Work>()
const listeners = new Set<() => void>()

function put(work: Work): void {
  works.set(work.path, work)
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

const isAnyRunning = (): boolean => [...works.values()].some(({ isRunning }) => isRunning)

window.addEventListener('beforeunload', (event) => {
  if (isAnyRunning()) event.preventDefault()
})

/** Starts work and returns a promise that resolves at its end, also after an error. A screen has one work at a time. */
export async function startWork(
  { title, path, all }: Pick<Work, 'title' | 'path' | 'all'>,
  run: (report: Report) => Promise<void>,
): Promise<void> {
  let work: Work = { title, path, all, done: 0, summary: '', bad: [], error: null, isRunning: true }
  const change = (changed: Partial<Work>) => put((work = { ...work, ...changed }))
  change({})
  try {
    await run(change)
    change({ isRunning: false })
  } catch (failure) {
    change({ isRunning: false, error: failure instanceof Error ? failure : new Error(String(failure)) })
  }
}

/** Removes the result of finished work. */
export function dismissWork(path: string): void {
  if (works.get(path)?.isRunning === true) return
  works.delete(path)
  for (const listener of listeners) listener()
}

/** Returns the work of a screen, or undefined. */
export function useWork(path: string): Work | undefined {
  return useSyncExternalStore(subscribe, () => works.get(path))
}

/** Returns the first work that runs, or undefined. */
export function useRunningWork(): Work | undefined {
  return useSyncExternalStore(subscribe, () => [...works.values()].find(({ isRunning }) => isRunning))
}
