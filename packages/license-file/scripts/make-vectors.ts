/** Writes vectors/license-files.json. After a change to vectors.ts, run `node scripts/make-vectors.ts`, then `npm run format`. */

import { writeFileSync } from 'node:fs'

import { makeVectors } from './vectors.ts'

writeFileSync(new URL('../vectors/license-files.json', import.meta.url), `${JSON.stringify(makeVectors(), null, 2)}\n`)
