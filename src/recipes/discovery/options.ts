import { type OptionRules, readOptions, record, text } from '../../core/base/options.ts'

export interface DiscoveryOptions {
  /** A folder of the project. Default: the current one. Folders above it count, up to the root of the repository. */
  readonly cwd?: string
  /** The home folder. Default: the user's. */
  readonly home?: string
  /** The environment that names further folders. Default: that of the process. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

const OPTIONS: OptionRules<DiscoveryOptions> = { cwd: text, home: text, env: record }

/** Throws for options that could never work. The search code knows every dialect and is loaded on first use. */
export function checkDiscovery(where: string, options: DiscoveryOptions): DiscoveryOptions {
  return readOptions(where, options, OPTIONS)
}
