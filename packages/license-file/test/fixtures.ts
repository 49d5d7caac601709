import { generateKeyPair, type LicensePayload, signLicenseFile } from '../src/index.ts'

export const key = generateKeyPair()

export const payload: LicensePayload = {
  licenseKey: 'K7QX-93FM-TTRW-H2ZD',
  licenseId: '0195a3c0-7b1e-7c44-9f3a-2f6d5b8e1a01',
  customerEmail: 'zoë@example.com',
  policy: { type: 'SUBSCRIPTION', maxMachines: 5, expiresAt: '2027-03-01T00:00:00.000Z' },
  issuedAt: '2026-03-01T00:00:00.000Z',
  refreshAfter: '2026-03-31T00:00:00.000Z',
  kid: key.keyId,
}

export const file = signLicenseFile(payload, key.privateKey)
