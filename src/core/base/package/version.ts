/** The version of the package, as protocols and servers tell it. A test compares it with `package.json`, which no bundle has. */
export const VERSION = '0.1.0'
