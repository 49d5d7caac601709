/**
 * The program of `npm run patroni:install`: installs the programs of a Patroni cluster from the packages of Debian. If the release of
 * the system has a Patroni older than 4.0, the program unpacks the package of Debian 13 into a separate folder.
 */

import { installPackages, unpackPackages } from '../../support/debian-packages.ts'
import { findTools, UNPACKED } from './tools.ts'

const PACKAGES = ['etcd-server', 'etcd-client', 'haproxy', 'postgresql']
/** The modules that Patroni imports. */
const MODULES = ['psycopg2', 'dateutil', 'prettytable', 'psutil', 'etcd', 'yaml', 'urllib3', 'click', 'cdiff']

if (typeof (await findTools()) === 'string') {
  installPackages([...PACKAGES, ...MODULES.map((name) => `python3-${name}`)])
  if (typeof (await findTools()) === 'string') unpackPackages(['patroni'], UNPACKED)
}
const tools = await findTools()
if (typeof tools === 'string') throw new Error(tools)
process.stdout.write(`Patroni, etcd, haproxy and Postgres are installed: ${JSON.stringify(tools)}\n`)
