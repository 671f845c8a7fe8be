import { type OptionRules, readOptions, record, text } from '../../base/options.ts'

export interface DiscoveryOptions {
  /** A folder of the project. Default: the current one. Folders above it count up to the root of the repository. */
  readonly cwd?: string
  /** Default: that of the user. */
  readonly home?: string
  readonly env?: Readonly<Record<string, string | undefined>>
}

const OPTIONS: OptionRules<DiscoveryOptions> = { cwd: text, home: text, env: record }

/** Refuses what could never work, where it was said. The places themselves know every dialect, and are loaded when used. */
export function checkDiscovery(where: string, options: DiscoveryOptions): DiscoveryOptions {
  return readOptions(where, options, OPTIONS)
}
