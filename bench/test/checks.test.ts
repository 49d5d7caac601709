import { describe, expect, test } from 'vitest'

import { checkBody, createSupply, NEW_MACHINE_MARK, prepareChecks, rawRequest } from '../src/load/checks.ts'
import { parseMix } from '../src/load/mix.ts'
import { codeOf } from '../src/load/outcome.ts'

const targets = [
  { apiKey: 'kwk_a', licenseKey: 'AAAA', machineIds: ['m1', 'm2'] },
  { apiKey: 'kwk_b', licenseKey: 'BBBB', machineIds: ['m3'] },
]
const url = new URL('http://127.0.0.1:8080')

describe('prepared checks', () => {
  test('prepareChecks uses all licenses and their machines in turn', () => {
    const checks = prepareChecks({ targets, mix: parseMix('known=1'), length: 4 })
    expect(checks.map((check) => `${check.licenseKey} ${check.machineId}`)).toEqual([
      'AAAA m1',
      'BBBB m3',
      'AAAA m2',
      'BBBB m3',
    ])
  })

  test('prepareChecks throws when the mix needs machine ids and none are given', () => {
    expect(() => prepareChecks({ targets, mix: parseMix('blacklisted=1'), length: 1 })).toThrow(/machine ids/)
  })

  test('rawRequest counts bytes in the content-length of non-ASCII text', () => {
    const [check] = prepareChecks({
      targets: [{ apiKey: 'k', licenseKey: 'Ä', machineIds: ['機'] }],
      mix: parseMix('known=1'),
      length: 1,
    })
    if (check === undefined) throw new Error('no check was made')
    const [head = '', body = ''] = rawRequest(check, 'v2', url.host).toString().split('\r\n\r\n')
    expect(head).toContain(`content-length: ${Buffer.byteLength(body)}`)
    expect(JSON.parse(body)).toEqual({ license: 'Ä', fingerprint: '機' })
    expect(checkBody(check, 'v1')).toContain('"licenseKey":"Ä"')
  })

  test('each request for a new machine has a different machine id of the same length', () => {
    const checks = prepareChecks({ targets, mix: parseMix('new=1'), length: 1 })
    const supply = createSupply(checks, 'v2', url)
    const requests = Array.from({ length: 100 }, () => String(supply()))
    expect(new Set(requests).size).toBe(100)
    expect(new Set(requests.map((request) => request.length)).size).toBe(1)
    expect(requests.some((request) => request.includes(NEW_MACHINE_MARK))).toBe(false)
  })

  test('codeOf returns the code of a body without parsing it', () => {
    expect(codeOf('{"valid":false,"code":"NOT_FOUND","detail":"x"}')).toBe('NOT_FOUND')
    expect(codeOf('gateway time-out')).toBe('(none)')
  })
})
