/** `npm run build:console`: builds the console if its sources have changed. */

import { CONSOLE_FOLDER } from '../folder.ts'
import { buildConsole } from './build.ts'

const built = await buildConsole()
process.stdout.write(`${built ? 'Built' : 'Up to date:'} ${CONSOLE_FOLDER}\n`)
