/** The chapters of the documentation, in its order. */
export const tags = {
  Organizations: 'Vendors. The operator makes them; each vendor sees its own.',
  Products: 'What licenses are for.',
  Customers: 'Who owns licenses.',
  Licenses: 'The right of a customer to use a product: active, suspended, expired or revoked.',
  Machines: "The machines that hold a license's slots.",
  'License files': 'Signed files with which an app can check its license offline.',
  'Access rules': 'Blacklists, which refuse checks, and exclusions, which let them through.',
  Activity: 'What happened to licenses.',
  Alerts: 'Licenses that more machines want than they have slots.',
  Analytics: 'Counts of checks.',
  'Audit log': 'Who changed what.',
  'API keys': "Credentials for customers' apps.",
  'Management tokens': "Credentials for the vendor's scripts.",
  Members: "The vendor's people, and their personal access tokens.",
  'Signing keys': 'The keys that sign license files.',
  Validators: 'The processes that answer checks.',
} as const

export type Tag = keyof typeof tags
