/**
 * Caches what Node makes of modules: JavaScript without types, and its compiled form. Tests start hundreds of programs, each with up to a
 * thousand modules. Node 22 itself caches only the compiled form, and removing the types is a quarter of the CPU time of a start.
 * Node loads this file first in every program of the tests (test-programs.ts).
 */

import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import module from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const FOLDER = fileURLToPath(new URL('../node_modules/.cache/modules', import.meta.url))
const JAVASCRIPT = join(FOLDER, `javascript-${process.version}`)

/** Returns the module without types, from the cache if it contains the module. */
function javascriptOf(path) {
  const typescript = readFileSync(path)
  const cached = join(JAVASCRIPT, createHash('sha256').update(typescript).digest('hex'))
  try {
    return readFileSync(cached)
  } catch {
    const javascript = withoutWarnings(() => module.stripTypeScriptTypes(typescript.toString()))
    const incomplete = `${cached}-${process.pid}-${performance.now()}`
    writeFileSync(incomplete, javascript)
    renameSync(incomplete, cached)
    return javascript
  }
}

/** The function that removes types is experimental, and tests compare what programs print. */
function withoutWarnings(work) {
  const { emitWarning } = process
  process.emitWarning = () => undefined
  try {
    return work()
  } finally {
    process.emitWarning = emitWarning
  }
}

// npm may run on an older Node, and a program of a test may run as a user who may not write here.
try {
  mkdirSync(JAVASCRIPT, { recursive: true })
  module.enableCompileCache(FOLDER)
  module.registerHooks({
    load: (url, context, next) =>
      // Node rejects TypeScript of installed packages, and so do the tests.
      url.startsWith('file:') && url.endsWith('.ts') && !url.includes('/node_modules/')
        ? { format: 'module', source: javascriptOf(fileURLToPath(url)), shortCircuit: true }
        : next(url, context),
  })
} catch {
  // Without the cache, the program only starts later.
}
