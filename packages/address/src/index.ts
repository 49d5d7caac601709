export {
  type Address,
  contains,
  type Network,
  noAddress,
  parseAddress,
  parseNetwork,
  readAddressBytes,
} from './network.ts'
export { coveringNetworks, formatAddress, formatNetwork } from './format.ts'
export { COUNTRY_CODES, packCountry, parseCountryCode, readCountry, unpackCountry } from './country.ts'
export { type EdgePreset, EDGE_HEADERS, EDGE_PRESETS } from './edge-presets.ts'
export {
  type RequestOrigin,
  type OriginResolver,
  type OriginResolverOptions,
  type OriginSource,
  createOriginResolver,
  parseTrustedProxies,
} from './resolver.ts'
export { canonicalRuleValue, readRuleMatch, RULE_VALUE_ERRORS } from './rule-values.ts'
