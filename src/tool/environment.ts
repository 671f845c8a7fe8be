import { isSecretName, looksSecret } from '../base/secrets/shapes.ts'

/**
 * Our variables for a command that a model or a file chose, as a shell of this user has them: without those that are named
 * like a secret, and without those that hold a key or an address with a password.
 */
export function plainEnvironment(): Record<string, string> {
  return ours((name, value) => !FOLDERS.has(name) && !isSecretName(name) && !looksSecret(value))
}

/** Our variables for a server of somebody else: those that a program needs to start, and no others. */
export function startEnvironment(): Record<string, string> {
  // A function that a shell has exported is code.
  return ours((name, value) => STARTING.test(name) && !value.startsWith('()') && !looksSecret(value))
}

/**
 * What stands before a program that a definition gives variables which decide what runs and what is loaded: `env` and those
 * variables. So they are a part of the command line that is decided and shown. Empty where there are none.
 */
export function loadingWords(env: Readonly<Record<string, string>>): readonly string[] {
  const set = Object.entries(env).filter(([name]) => isDisallowedVariable(name))
  return set.length === 0 ? [] : ['env', ...set.map(([name, value]) => `${name}=${value}`)]
}

/** Does this variable decide which program runs or what it loads? Then it is not handed over unseen. */
export function isDisallowedVariable(name: string): boolean {
  return DISALLOWED.has(name.toUpperCase()) || DISALLOWED_FAMILY.test(name)
}

function ours(isPassed: (name: string, value: string) => boolean): Record<string, string> {
  const entries = Object.entries(process.env).flatMap(([name, value]) =>
    value !== undefined && isPassed(name, value) ? [[name, value] as const] : [],
  )
  return Object.fromEntries(entries)
}

/** A program has a folder of its own. */
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

/** Loaders, and where package managers and git take their programs and settings from. */
const DISALLOWED_FAMILY =
  /^(?:LD_|DYLD_|BASH_FUNC_|PYTHON(?:PATH|HOME|STARTUP)$|npm_config_|PIP_|UV_(?:\w*INDEX|CONFIG|PYTHON)|GIT_CONFIG)/i
