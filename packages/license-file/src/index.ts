/**
 * Offline license files: Ed25519 keys, signing and strict verification. The package runs in Node and in browsers, and its
 * only dependency is @noble/curves. Functions return expected failures as values instead of throwing them.
 */

export { type Answer, type AnswerProblem, type AnswerVerification, verifyAnswer } from './answer.ts'
export { encodeBase64Url } from './base64.ts'
export {
  type FileJudgement,
  type FileProblem,
  type FileUser,
  judgeLicenseFile,
  type JudgingFacts,
  ownerProblem,
} from './judge.ts'
export { generateKeyPair, type KeyPair, keyIdOf, keyPairFromPrivateKey } from './keys.ts'
export { spkiToPublicKey, type VerificationKey } from './keys.ts'
export {
  type EntitlementValue,
  FILE_LIFETIME_MS,
  type LicensePayload,
  MAX_FILE_LIFETIME_MS,
  parsePayload,
  POLICY_TYPES,
  type PolicyType,
  readEntitlements,
} from './payload.ts'
export { refreshAfterMs, serializePayload } from './payload.ts'
export { type FileRequest, parseRequestCode, requestCodeOf } from './request-code.ts'
export { bytesToSign, signLicenseFile } from './sign.ts'
export { publicKeyToSpki } from './spki.ts'
export { CLOCK_TOLERANCE_MS, type FileValidity, fileValidity } from './validity.ts'
export { claimedLicenseKey, type FileVerification, verifyLicenseFile } from './verify.ts'
