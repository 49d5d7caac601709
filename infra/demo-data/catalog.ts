/** The names in the demo data, which shows an organization that sells audio software. All domains and addresses are reserved for examples. */

export const ORGANIZATION = 'Aria Audio'

/** The first entry replaces the name and the entitlements of the product that `npm start` creates. */
export const PRODUCTS = [
  { name: 'Aria Studio', entitlements: { edition: 'standard', tracks: 32, export: true } },
  { name: 'Aria Live', entitlements: { edition: 'stage', scenes: 16 } },
  { name: 'Aria Mastering', entitlements: { presets: 40 } },
] as const

export const MEMBERS = [
  {
    email: 'tomas.berg@aria.example',
    permissions: [
      'licenses.read',
      'licenses.write',
      'products.read',
      'products.write',
      'customers.read',
      'customers.write',
      'analytics.read',
      'audit.read',
    ],
  },
  {
    email: 'maya.lind@aria.example',
    permissions: ['licenses.read', 'licenses.write', 'products.read', 'customers.read', 'customers.write'],
  },
  {
    email: 'priya.nair@aria.example',
    permissions: ['licenses.read', 'licenses.write', 'products.read', 'customers.read', 'customers.write'],
  },
  {
    email: 'jonas.weber@aria.example',
    permissions: ['licenses.read', 'products.read', 'customers.read', 'analytics.read'],
  },
] as const
/** The members who make the changes: administrator, support and sales. */
export const [ADMINISTRATOR, SUPPORT, SALES] = [MEMBERS[0].email, MEMBERS[1].email, MEMBERS[2].email]

/** The names of half of the customers. `COMPANIES` contains the names of the other half. */
export const PEOPLE = [
  'Nora Halvorsen',
  'Luca Moretti',
  'Aiko Tanaka',
  'Samuel Okafor',
  'Ines Carvalho',
  'Peter Novak',
  'Amelie Laurent',
  'Diego Fuentes',
  'Freya Sørensen',
  'Mateusz Zielinski',
  'Leila Haddad',
  'Oliver Grant',
  'Yuki Mori',
  'Clara Vogel',
  'Rohan Mehta',
  'Sofia Lindqvist',
  'Ethan Brooks',
  'Marta Kowalska',
  'Noah Fischer',
  'Hana Kim',
  'Elena Petrova',
  'Daniel Osei',
  'Camille Dubois',
  'Tariq Aziz',
  'Greta Holm',
  'Andre Silva',
  'Julia Maier',
  'Ben Archer',
  'Zoe Papadaki',
  'Ivan Horvat',
] as const

export const COMPANIES = [
  'Studio Nordlicht',
  'Blue Door Records',
  'Harbor Sound',
  'Casa Sonora',
  'Pine Street Audio',
  'Lighthouse Post',
  'Kyoto Tape Works',
  'Red Barn Studios',
  'Opera House Lyon',
  'Radio Meridian',
  'Tidal Room',
  'Copper Wire Mastering',
  'Northern Lights Festival',
  'Echo Valley',
  'Granary Studios',
  'Silver Reel',
  'Conservatory of Porto',
  'Metro Broadcasting',
  'Paper Crane Games',
  'Old Mill Recording',
  'Velvet Curtain Theater',
  'Sunday Sessions',
  'Atelier Klang',
  'Fjord Film Scoring',
  'Second Floor Audio',
  'Bright Lane Podcasts',
  'Cedar Hall',
  'Monolith Sound Design',
  'Riverside School of Music',
  'Lantern Street Radio',
] as const

export const HOSTS = ['studio', 'macbook', 'edit', 'stage', 'mix', 'laptop', 'control-room', 'rehearsal'] as const
