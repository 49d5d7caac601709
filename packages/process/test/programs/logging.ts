/** A program for log.test.ts: logs an error that carries what must not be written down. */

import { createLogger } from '../../src/index.ts'

const log = createLogger('logging', 'info')
const cause = Object.assign(new Error('refused'), { address: '203.0.113.7', detail: 'Key (value)=(203.0.113.7)' })
log.debug('not at this level')
log.error({ err: new Error('no answer', { cause }) }, 'The feed stopped.')
