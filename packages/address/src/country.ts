/** Parses the country codes of rules (docs/api.md#r2) and of request headers (docs/api.md#o2). */

const ASSIGNED = `
AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ
CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR
GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP
KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT
MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW
SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ
UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW`

/** The assigned ISO 3166-1 alpha-2 codes, and `XK`, which edge networks send for Kosovo. */
export const COUNTRY_CODES: ReadonlySet<string> = new Set([...ASSIGNED.trim().split(/\s+/), 'XK'])

/** Returns the text in upper case if it is one of COUNTRY_CODES, otherwise null. */
export function parseCountryCode(text: string): string | null {
  if (!/^[A-Za-z]{2}$/.test(text)) return null
  const code = text.toUpperCase()
  return COUNTRY_CODES.has(code) ? code : null
}

/** Returns the two letters as one number, `c0 << 8 | c1`. The engine compares countries by this number. */
export function packCountry(code: string): number {
  return (code.charCodeAt(0) << 8) | code.charCodeAt(1)
}

/** Returns the code of a packed country, or null for 0, which means unknown. */
export function unpackCountry(packed: number): string | null {
  return packed === 0 ? null : String.fromCharCode(packed >>> 8, packed & 255)
}

const isLetter = (c: number): boolean => c >= 65 && c <= 90

/**
 * Returns the packed country in a header's value, or 0 if it is unknown. Edge networks send `XX`, `ZZ` or `T1` (Tor) for an unknown
 * country. The result may be an unassigned code. No rule contains such a code, so it matches no rule.
 */
export function readCountry(text: string): number {
  if (text.length !== 2) return 0
  const c0 = text.charCodeAt(0) & ~32
  const c1 = text.charCodeAt(1) & ~32
  if (!isLetter(c0) || !isLetter(c1)) return 0
  const packed = (c0 << 8) | c1
  return packed === UNKNOWN_X || packed === UNKNOWN_Z ? 0 : packed
}

const UNKNOWN_X = packCountry('XX')
const UNKNOWN_Z = packCountry('ZZ')
