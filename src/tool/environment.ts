import { isSecretName, isSecretOption, looksSecret } from '../base/secrets/shapes.ts'

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
 * The words before a program whose definition sets variables: `env` and all of them that are not known to be plain data, because
 * any other may decide what runs or loads. They are part of the command line that is decided and shown. Empty where there are
 * none.
 */
export function envPrefix(env: Readonly<Record<string, string>>): readonly string[] {
  const set = Object.entries(env).filter(([name, value]) => !isPlainVariable(name, value))
  return set.length === 0 ? [] : ['env', ...set.map(([name, value]) => `${name}=${value}`)]
}

/**
 * True for a variable that is known to hold data only: a key or a password by its name, or a plain word such as the language or
 * a port. False for all others: nobody can list every variable that makes some program load code.
 */
export function isPlainVariable(name: string, value: string): boolean {
  if (isDisallowedVariable(name)) return false
  return isSecretOption(name) || (PLAIN_NAME.test(name) && PLAIN_VALUE.test(value))
}

/** True for a variable of an interpreter, a tool or a library that may load code, where its value cannot be shown. */
export function isLoadingVariable(name: string): boolean {
  return isDisallowedVariable(name) || (LOADING.test(name) && !isSecretOption(name))
}

/** True for a variable that is known to decide which program runs or what it loads. No file may set it. */
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

const PLAIN_NAME =
  /^(?:LANG|LANGUAGE|LC_[A-Z]+|TZ|TERM|COLORTERM|NO_COLOR|FORCE_COLOR|CI|DEBUG|NODE_ENV|PORT|(?:[A-Z][A-Z0-9]*_)*(?:LOG_LEVEL|ID|REGION|EMAIL|USERNAME|PORT|TIMEOUT|TIMEOUT_MS))$/
/** No path, no list of words. */
const PLAIN_VALUE = /^[\w.,:@+*-]{0,200}$/

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

const LOADING =
  /^(?:HOME|XDG_\w+|(?:PYTHON|NODE|BUN|DENO|RUBY|PERL|PHP|LUA|R_|JAVA|_JAVA|JDK|DOTNET|OPENSSL|GIT_|SSH_|RUST|CARGO|COREPACK|YARN|PNPM|UV_|GO(?!OGLE)|MAKE|BASH|SHELL|LESS)\w*|GCONV_PATH|LOCPATH|NLSPATH|PS4|PROMPT_COMMAND|EDITOR|VISUAL|PAGER|BROWSER|\w+_(?:OPTIONS|OPTS|PROXY|WRAPPER|ASKPASS|PRELOAD|HOOKS))$/i
