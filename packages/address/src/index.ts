export {
  type Address,
  contains,
  type Network,
  noAddress,
  parseAddress,
  parseNetwork,
  readAddressBytes,
} from './network.ts'
export { formatAddress, formatNetwork } from './format.ts'
export { COUNTRY_CODES, packCountry, parseCountryCode, readCountry, unpackCountry } from './country.ts'
export { type Edge, EDGE_HEADERS, EDGES } from './edge.ts'
export {
  type Client,
  type ClientResolver,
  type ClientResolverOptions,
  type ClientSource,
  createClientResolver,
  parseForwarded,
  parseTrustedProxies,
} from './resolver.ts'
