/** Writes the files in vectors/. After a change to the vectors, run `node scripts/make-vectors.ts`, then `npm run format`. */

import { writeFileSync } from 'node:fs'

import { makeAnswerVectors } from './answer-vectors.ts'
import { makeVectors } from './vectors.ts'

const write = (name: string, vectors: object): void =>
  writeFileSync(new URL(`../vectors/${name}.json`, import.meta.url), `${JSON.stringify(vectors, null, 2)}\n`)

write('license-files', makeVectors())
write('signed-answers', makeAnswerVectors())
