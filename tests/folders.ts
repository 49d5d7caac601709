/**
 * Finds circular imports between folders. The entries of each folder (its files and folders) form a graph. An import is an edge
 * between two entries of the innermost folder that contains both files. Therefore `main.ts` may import the folders beside it,
 * and these folders may import a `config.ts` beside them. The linter finds circular imports between files.
 */

import { posix } from 'node:path'

import { importsOf } from './imports.ts'

/** Returns one sentence per cycle, with one import per edge. `sources` maps paths to texts. */
export function folderCircles(sources: ReadonlyMap<string, string>): string[] {
  return [...arrowsByFolder(sources)].flatMap(([folder, arrows]) =>
    circles(arrows).map((entries) => {
      const within = arrows.filter(({ from, to }) => entries.has(from) && entries.has(to))
      return `${folder}: ${within.map(({ example }) => example).join(', ')}`
    }),
  )
}

interface Arrow {
  from: string
  to: string
  /** One of the imports that this edge represents. */
  example: string
}

function arrowsByFolder(sources: ReadonlyMap<string, string>): Map<string, Arrow[]> {
  const folders = new Map<string, Arrow[]>()
  for (const [path, source] of sources)
    for (const { from } of importsOf(source)) {
      if (!from.startsWith('.')) continue
      const target = posix.join(posix.dirname(path), from)
      const [own, other] = [path.split('/'), target.split('/')]
      const depth = own.findIndex((part, index) => part !== other[index])
      if (depth === -1) continue
      const folder = own.slice(0, depth).join('/')
      const arrow = { from: own[depth] ?? '', to: other[depth] ?? '', example: `${path} imports ${target}` }
      const arrows = folders.get(folder) ?? []
      if (!arrows.some((one) => one.from === arrow.from && one.to === arrow.to)) arrows.push(arrow)
      folders.set(folder, arrows)
    }
  return folders
}

/** Returns the sets of entries that import each other, directly or indirectly. */
function circles(arrows: readonly Arrow[]): Set<string>[] {
  const reached = new Map(arrows.map(({ from }) => [from, reachableFrom(from, arrows)]))
  const found: Set<string>[] = []
  for (const [entry, targets] of reached) {
    if (!targets.has(entry) || found.some((circle) => circle.has(entry))) continue
    found.push(new Set([...targets].filter((target) => reached.get(target)?.has(entry))))
  }
  return found
}

function reachableFrom(start: string, arrows: readonly Arrow[]): Set<string> {
  const reached = new Set<string>()
  const next = [start]
  for (let entry = next.pop(); entry !== undefined; entry = next.pop())
    for (const { from, to } of arrows)
      if (from === entry && !reached.has(to)) {
        reached.add(to)
        next.push(to)
      }
  return reached
}
