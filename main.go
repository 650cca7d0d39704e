// Command companyscore scores companies by their domain names. It has one
// subcommand per role; `companyscore up` starts them all on one machine.
package main

import (
	"os"

	"companyscore/cmd"
)

func main() { os.Exit(cmd.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
