/** Logs an error with fields that must never be stored. log.test.ts runs this program. */

import { createLogger } from '../../src/index.ts'

const log = createLogger('logging', 'info')
const cause = Object.assign(new Error('refused'), { address: '203.0.113.7', detail: 'Key (value)=(203.0.113.7)' })
log.debug('not at this level')
if (process.argv[2] !== undefined) log.info({ machineId: process.argv[2] }, 'text from outside')
log.error({ err: new Error('no response', { cause }) }, 'feed stopped')
