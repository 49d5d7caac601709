/** Judges the vectors in a page and writes the outcomes into its output element. */

import { judgeLicenseFile, spkiToPublicKey } from '@keyward/license-file'
import vectors from '@keyward/license-file/vectors/license-files.json' with { type: 'json' }

declare const document: {
  body: { dataset: Record<string, string> }
  querySelector(selector: string): { value: string }
}

const outcomes = vectors.cases.map((vector): [string, string] => {
  const judged = judgeLicenseFile(vector.file, {
    keys: vectors.keys
      .filter(({ keyId }) => vector.keyIds.includes(keyId))
      .map(({ keyId, publicKey }) => ({ keyId, publicKey: spkiToPublicKey(publicKey) ?? new Uint8Array() })),
    licenseKey: vector.licenseKey,
    productId: vector.productId,
    machineId: vector.machineId,
    nowMs: Date.parse(vector.now),
    latestSeenMs: vector.latestSeen === null ? 0 : Date.parse(vector.latestSeen),
  })
  return [vector.name, judged.ok ? 'GOOD' : judged.reason]
})

document.querySelector('#license').value = JSON.stringify(Object.fromEntries(outcomes))
document.body.dataset['settled'] = 'true'
