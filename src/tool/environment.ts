import { isSecretName, looksSecret } from '../base/secrets/shapes.ts'

/**
 * Our variables for a command that a model or a file chose, as this user's shell has them, without those that are named
 * like a secret or hold a key or an address with a password.
 */
export function plainEnvironment(): Record<string, string> {
  return ours((name, value) => !FOLDERS.has(name) && !isSecretName(name) && !looksSecret(value))
}

/** Our variables for a server that is not ours: only those that a program needs to start. */
export function startEnvironment(): Record<string, string> {
  // Excludes a function that a shell has exported, because it is code.
  return ours((name, value) => STARTING.test(name) && !value.startsWith('()') && !looksSecret(value))
}

/**
 * The words before a program whose definition sets variables that decide what runs and loads: `env` and those
 * variables. They are part of the command line that is decided and shown. Empty where there are none.
 */
export function envPrefix(env: Readonly<Record<string, string>>): readonly string[] {
  const set = Object.entries(env).filter(([name]) => isDisallowedVariable(name))
  return set.length === 0 ? [] : ['env', ...set.map(([name, value]) => `${name}=${value}`)]
}

/**
 * True for a variable that decides which program runs or what it loads. Such a variable must be visible in the command
 * line.
 */
export function isDisallowedVariable(name: string): boolean {
  return DISALLOWED.has(name.toUpperCase()) || DISALLOWED_FAMILY.test(name)
}

function ours(isPassed: (name: string, value: string) => boolean): Record<string, string> {
  const entries = Object.entries(process.env).flatMap(([name, value]) =>
    value !== undefined && isPassed(name, value) ? [[name, value] as const] : [],
  )
  return Object.fromEntries(entries)
}

/** A program gets its own folder. */
const FOLDERS: ReadonlySet<string> = new Set(['PWD', 'OLDPWD'])

const STARTING =
  /^(?:HOME|LOGNAME|USER|PATH|SHELL|TERM|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|NO_COLOR|XDG_\w+|(?:HTTPS?|ALL|NO)_PROXY|https?_proxy|all_proxy|no_proxy|SSL_CERT_(?:FILE|DIR)|NODE_EXTRA_CA_CERTS|__CF_USER_TEXT_ENCODING)$/

const DISALLOWED: ReadonlySet<string> = new Set([
  ...['PATH', 'PATHEXT', 'SYSTEMROOT', 'WINDIR', 'COMSPEC', 'SHELL', 'IFS', 'ENV', 'BASH_ENV', 'ZDOTDIR', 'CDPATH'],
  ...['NODE_OPTIONS', 'NODE_PATH', 'RUBYOPT', 'RUBYLIB', 'GEM_PATH', 'GEM_HOME', 'PERL5LIB', 'PERL5OPT', 'CLASSPATH'],
  ...['JAVA_TOOL_OPTIONS', 'GO111MODULE', 'GOROOT', 'GOPROXY', 'GOFLAGS', 'APPINIT_DLLS', 'SESSIONNAME', 'TEMP', 'TMP'],
  ...['LOCALAPPDATA', 'USERPROFILE', 'HOMEDRIVE', 'HOMEPATH', 'GIT_SSH', 'GIT_SSH_COMMAND', 'GIT_EXEC_PATH'],
  ...['GIT_TEMPLATE_DIR', 'GIT_EXTERNAL_DIFF', 'GIT_PROXY_COMMAND', 'YARN_NPM_REGISTRY_SERVER'],
])

/** Loaders, and variables that tell package managers and git where to find programs and settings. */
const DISALLOWED_FAMILY =
  /^(?:LD_|DYLD_|BASH_FUNC_|PYTHON(?:PATH|HOME|STARTUP)$|npm_config_|PIP_|UV_(?:\w*INDEX|CONFIG|PYTHON)|GIT_CONFIG)/i
