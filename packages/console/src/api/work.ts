/**
 * Runs imports, which need many requests. An import continues while the person uses other screens. Closing the page stops it, so the
 * browser asks for a confirmation first.
 */

import { useQueryClient } from '@tanstack/react-query'
import { useSyncExternalStore } from 'react'

export interface BadRow {
  /** The position of the row in the text, such as "Line 4". */
  where: string
  detail: string
}

/** A task that a screen has started, with its progress and its result. */
export interface Work {
  title: string
  /** The path of the screen that started the task and shows its progress. */
  path: string
  /** The number of finished steps. */
  done: number
  /** The total number of steps. */
  all: number
  /** The result so far, in sentences for people. */
  summary: string
  bad: readonly BadRow[]
  /** The rows that need no rule, because another one does all that they say. */
  covered: readonly BadRow[]
  error: Error | null
  isRunning: boolean
}

export type Report = (progress: Partial<Pick<Work, 'done' | 'summary' | 'bad' | 'covered'>>) => void

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

/** Runs a task, which replaces the earlier task of the same screen. Resolves when the task has ended, also after an error. */
async function startWork(
  { title, path, all }: Pick<Work, 'title' | 'path' | 'all'>,
  run: (report: Report) => Promise<void>,
): Promise<void> {
  let work: Work = { title, path, all, done: 0, summary: '', bad: [], covered: [], error: null, isRunning: true }
  const change = (changed: Partial<Work>) => put((work = { ...work, ...changed }))
  change({})
  try {
    await run(change)
    change({ isRunning: false })
  } catch (failure) {
    change({ isRunning: false, error: failure instanceof Error ? failure : new Error(String(failure)) })
  }
}

/** Returns a function that starts a task. When the task has ended, all lists are read again. */
export function useStart(): (work: Parameters<typeof startWork>[0], run: Parameters<typeof startWork>[1]) => void {
  const queries = useQueryClient()
  return (work, run) => void startWork(work, run).then(() => queries.invalidateQueries())
}

/** Removes the result of a finished task. */
export function dismissWork(path: string): void {
  if (works.get(path)?.isRunning === true) return
  works.delete(path)
  for (const listener of listeners) listener()
}

/** Returns the task of a screen, or undefined. */
export function useWork(path: string): Work | undefined {
  return useSyncExternalStore(subscribe, () => works.get(path))
}

/** Returns a running task of any screen, or undefined. */
export function useRunningWork(): Work | undefined {
  return useSyncExternalStore(subscribe, () => [...works.values()].find(({ isRunning }) => isRunning))
}
