import { describe, expect, test } from 'vitest'

import { checkBody, NEW_MACHINE_MARK, prepareChecks, rawRequest } from '../src/load/checks.ts'
import { parseMix } from '../src/load/mix.ts'
import { codeOf } from '../src/load/outcome.ts'
import { createSupply } from '../src/load/supply.ts'

const targets = [
  { apiKey: 'kwk_a', licenseKey: 'AAAA', machineIds: ['m1', 'm2'] },
  { apiKey: 'kwk_b', licenseKey: 'BBBB', machineIds: ['m3'] },
]
const url = new URL('http://127.0.0.1:8080')

describe('checks', () => {
  test('walk through all licenses and their machines', () => {
    const checks = prepareChecks({ targets, mix: parseMix('known=1'), length: 4 })
    expect(checks.map((check) => `${check.licenseKey} ${check.machineId}`)).toEqual([
      'AAAA m1',
      'BBBB m3',
      'AAAA m2',
      'BBBB m3',
    ])
  })

  test('refuse a mix whose machines were not given', () => {
    expect(() => prepareChecks({ targets, mix: parseMix('blacklisted=1'), length: 1 })).toThrow(/machine ids/)
  })

  test('a request counts its bytes, also of letters beyond ASCII', () => {
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

  test('every new machine is another one and leaves the length as it was', () => {
    const checks = prepareChecks({ targets, mix: parseMix('new=1'), length: 1 })
    const supply = createSupply(checks, 'v2', url)
    const requests = Array.from({ length: 100 }, () => String(supply()))
    expect(new Set(requests).size).toBe(100)
    expect(new Set(requests.map((request) => request.length)).size).toBe(1)
    expect(requests.some((request) => request.includes(NEW_MACHINE_MARK))).toBe(false)
  })

  test('reads the code from a body without parsing it', () => {
    expect(codeOf('{"valid":false,"code":"NOT_FOUND","detail":"x"}')).toBe('NOT_FOUND')
    expect(codeOf('gateway time-out')).toBe('(none)')
  })
})
