package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"sluice/auth"
)

// firstUser is the user that a first start makes: an ordinary writer of the lake.
const firstUser = "sluice"

// Run writes the user's verifier.
func (c *userAddCommand) Run(context.Context) error {
	password, err := c.password()
	if err != nil {
		return err
	}
	if password == "" {
		return errors.New("the password is empty")
	}
	path := c.path(c.dataDirFlag)
	if c.Users == "" {
		if err := c.makeDataDir(); err != nil {
			return err
		}
	}
	if err := auth.AddUser(path, c.Name, password, c.Admin); err != nil {
		return fmt.Errorf("add user %q to %q: %w", c.Name, path, err)
	}
	if c.Name != firstUser {
		return nil
	}
	// The first start's password is no longer this user's.
	if err := os.Remove(firstPasswordPath(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// password is the one given, typed in, or the first line of standard input.
func (c *userAddCommand) password() (string, error) {
	if c.Password != nil {
		return *c.Password, nil
	}
	stdin := int(os.Stdin.Fd())
	if !term.IsTerminal(stdin) {
		line, err := bufio.NewReader(os.Stdin).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("read the password: %w", err)
		}
		return strings.TrimRight(line, "\r\n"), nil
	}
	first, err := ask(stdin, fmt.Sprintf("Password for user %s: ", c.Name))
	if err != nil {
		return "", err
	}
	second, err := ask(stdin, "Again: ")
	if err != nil {
		return "", err
	}
	if first != second {
		return "", errors.New("the passwords differ")
	}
	return first, nil
}

// ask reads a line from the terminal without showing it.
func ask(terminal int, prompt string) (string, error) {
	fmt.Fprint(os.Stderr, prompt)
	text, err := term.ReadPassword(terminal)
	fmt.Fprintln(os.Stderr)
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	return string(text), nil
}

// firstPasswordPath is where a first start keeps the password it made, beside the user file, so that later starts can
// print it again. Whoever has noted it may delete the file.
func firstPasswordPath(usersPath string) string {
	return filepath.Join(filepath.Dir(usersPath), "password.txt")
}

// firstLogin makes the first user if there is no user file yet, and returns whom the line to paste is for: the first
// user, with its password as long as that is kept, or nobody.
func firstLogin(usersPath string) (name, password string, err error) {
	if _, err := os.Stat(usersPath); errors.Is(err, fs.ErrNotExist) {
		return makeFirstUser(usersPath)
	}
	users, err := auth.LoadUsers(usersPath)
	if err != nil {
		return "", "", fmt.Errorf("read the user file: %w", err)
	}
	if _, ok := users.Lookup(firstUser); !ok {
		return "", "", nil
	}
	text, err := os.ReadFile(firstPasswordPath(usersPath))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", fmt.Errorf("read the first password: %w", err)
	}
	return firstUser, strings.TrimSpace(string(text)), nil
}

// makeFirstUser writes the password before the user file: a start that dies in between is repeated by the next one.
func makeFirstUser(usersPath string) (name, password string, err error) {
	password = rand.Text() // 26 letters and digits, 130 bits
	if err := os.WriteFile(firstPasswordPath(usersPath), []byte(password+"\n"), 0o600); err != nil {
		return "", "", fmt.Errorf("keep the first password: %w", err)
	}
	if err := auth.AddUser(usersPath, firstUser, password, false); err != nil {
		return "", "", fmt.Errorf("make the first user: %w", err)
	}
	return firstUser, password, nil
}
