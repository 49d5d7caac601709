import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { Balancer } from '../cluster/balancer.ts'

/** Runs nginx on this machine with the shipped configuration. */
export class Nginx extends Balancer {
  protected override command(configuration: string): string[] {
    const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
      .map((name) => `${name}_temp_path ${join(this.folder, name)};`)
      .join(' ')
    const text = readFileSync(configuration, 'utf8')
      .replace('http {', `http { ${folders}`)
      .replace('/dev/stdout', join(this.folder, 'log'))
    writeFileSync(configuration, text)
    return ['nginx', '-e', 'stderr', '-c', configuration, '-g', `daemon off; pid ${join(this.folder, 'pid')};`]
  }
}
