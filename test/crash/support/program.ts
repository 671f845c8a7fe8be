import path from 'node:path'
import { inject } from 'vitest'

/** The built file of a program of `test/crash/programs`. */
export function programFile(name: string): string {
  return path.join(inject('crashPrograms'), `${name}.mjs`)
}
