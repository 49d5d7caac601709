/** `npm run pack:keyward -- <folder>` packs the package into the folder (default: the current one) and prints its path. */

import { resolve } from 'node:path'

import { packKeyward } from './artifacts.ts'

process.stdout.write(`${await packKeyward(resolve(process.argv[2] ?? '.'))}\n`)
